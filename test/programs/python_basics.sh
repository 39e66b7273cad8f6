# python3: threads, subprocess, files, mmap, signals, tempfile, sqlite3, sockets, select.
# seconds: 120
cat > t.py <<'E'
import sys, os, threading, subprocess, mmap, signal, tempfile, sqlite3, socket, select, time, queue, json, hashlib, shutil, glob, fcntl, resource, zlib, ctypes, struct, random, re, pathlib, stat, errno, tarfile, io
def h(t): print("--", t, flush=True)
h("threads")
n = 0; lock = threading.Lock(); q = queue.Queue()
def work(i):
    global n
    for _ in range(1000):
        with lock: n += 1
    q.put(i)
ts = [threading.Thread(target=work, args=(i,)) for i in range(20)]
[t.start() for t in ts]; [t.join() for t in ts]; print(n, sorted(q.get() for _ in ts))
e = threading.Event(); print(e.wait(0.02)); threading.Timer(0.02, e.set).start(); print(e.wait(5))
c = threading.Condition(); loc = threading.local(); loc.x = 1
print(threading.active_count() >= 1)
h("subprocess")
print(subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout.strip(), subprocess.call(["sh", "-c", "exit 5"]), subprocess.run("cat | tr a-z A-Z", shell=True, input="abc", capture_output=True, text=True).stdout)
p = subprocess.Popen(["sleep", "100"]); p.terminate(); print(p.wait())
try: subprocess.run(["sleep", "10"], timeout=0.1)
except subprocess.TimeoutExpired: print("timeout")
try: subprocess.run(["/nonexistent"])
except FileNotFoundError as x: print(x.errno == errno.ENOENT)
p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE); print(len(p.communicate(b"x" * 500000)[0]))
print(subprocess.check_output(["env"], env={"A": "b"}), subprocess.run(["pwd"], cwd="/", capture_output=True).stdout)
r, w = os.pipe(); p = subprocess.Popen(["sh", "-c", f"echo inherited >&{w}"], pass_fds=[w]); p.wait(); os.close(w); print(os.read(r, 100))
h("files")
with tempfile.TemporaryDirectory(dir=".") as d:
    for i in range(50): pathlib.Path(d, f"f{i}").write_text("x" * i)
    print(sum(f.stat().st_size for f in pathlib.Path(d).iterdir()), len(glob.glob(d + "/f1*")))
    with tempfile.NamedTemporaryFile(dir=d) as f: f.write(b"temp"); f.flush(); print(os.path.getsize(f.name))
    with tempfile.TemporaryFile() as f: f.write(b"nameless"); f.seek(0); print(f.read())
    shutil.copytree(d, "copy"); shutil.make_archive("arch", "gztar", "copy"); print(len(tarfile.open("arch.tar.gz").getnames())); shutil.rmtree("copy")
print(os.path.exists(d)); open("f", "w").write("line\n" * 1000); print(sum(1 for _ in open("f"))); os.rename("f", "g"); os.symlink("g", "s"); print(os.readlink("s"), os.path.islink("s"), oct(os.stat("g").st_mode & 0o777)); os.chmod("g", 0o600); os.utime("g", (1, 2)); print(os.stat("g").st_mtime); os.truncate("g", 7); print(open("g", "rb").read())
fd = os.open("g", os.O_RDWR); fcntl.flock(fd, fcntl.LOCK_EX); fcntl.lockf(fd, fcntl.LOCK_EX); print(os.pread(fd, 3, 1), os.fstat(fd).st_size); os.close(fd); print(sorted(x.name for x in os.scandir("."))); print([x for x in os.walk(".")][0][2] == sorted(os.listdir("."), key=os.listdir(".").index))
h("mmap")
m = mmap.mmap(-1, 100000); m[0:5] = b"hello"; print(m[:5], m.find(b"llo"))
if os.fork() == 0: m[0:5] = b"child"; os._exit(0)
os.wait(); print(m[:5])
with open("mm", "w+b") as f: f.truncate(8192); k = mmap.mmap(f.fileno(), 8192); k[4096] = 65; k.flush(); k.close()
print(open("mm", "rb").read()[4096]); 
h("signals")
signal.signal(signal.SIGUSR1, lambda s, f: print("handler", s)); os.kill(os.getpid(), signal.SIGUSR1)
signal.signal(signal.SIGALRM, lambda s, f: print("alarm")); signal.setitimer(signal.ITIMER_REAL, 0.03); time.sleep(0.1); signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]); os.kill(os.getpid(), signal.SIGUSR2); print(signal.sigwait([signal.SIGUSR2])); signal.raise_signal(signal.SIGUSR1)
try: os.kill(os.getpid(), signal.SIGINT); time.sleep(1)
except KeyboardInterrupt: print("interrupted")
pid = os.fork()
if pid == 0: signal.signal(signal.SIGTERM, signal.SIG_DFL); signal.pause()
os.kill(pid, signal.SIGTERM); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])); print(subprocess.run([sys.executable, "-c", "import ctypes; ctypes.string_at(0)"]).returncode)
h("sqlite")
db = sqlite3.connect("t.db"); db.execute("create table t(a, b)"); db.executemany("insert into t values(?, ?)", [(i, i * i) for i in range(1000)]); db.commit(); print(db.execute("select count(*), sum(b) from t").fetchone()); db.execute("pragma journal_mode=wal"); db2 = sqlite3.connect("t.db"); db2.execute("insert into t values(1, 1)"); db2.commit(); print(db.execute("select count(*) from t").fetchone()); db.close(); db2.close()
h("sockets")
s = socket.create_server(("127.0.0.1", 0)); a = s.getsockname()
def serve():
    for _ in range(5):
        c, _ = s.accept()
        with c: c.sendall(c.recv(100).upper())
t = threading.Thread(target=serve); t.start()
for i in range(5):
    with socket.create_connection(a) as c: c.sendall(b"hello %d" % i); print(c.recv(100))
t.join(); s.close()
try: socket.create_connection(a)
except ConnectionRefusedError: print("refused")
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"dgram", u.getsockname()); print(u.recvfrom(10)[0]); u.settimeout(0.02)
try: u.recv(1)
except TimeoutError: print("timed out")
x, y = socket.socketpair(); socket.send_fds(x, [b"fd"], [os.open("g", os.O_RDONLY)]); d, fds, _, _ = socket.recv_fds(y, 10, 4); print(d, os.read(fds[0], 4)); print(select.select([x], [x], [], 0)[0], len(select.select([x], [x], [], 0)[1]))
e = select.epoll(); e.register(y, select.EPOLLIN); x.send(b"!"); print(len(e.poll(1))); print(socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)[0][4], len(socket.if_nameindex()) >= 1); s6 = socket.create_server(("::1", 0), family=socket.AF_INET6); print(s6.getsockname()[0])
h("misc")
print(json.dumps({"a": [1, 2.5, None]}), hashlib.sha256(b"x").hexdigest()[:8], len(zlib.compress(b"a" * 10000)), struct.pack(">I", 1), re.sub("a+", "b", "caat"), sum(i * i for i in range(100000)), 2 ** 200 % 1000007, resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 10, ctypes.CDLL(None).abs(-5), os.cpu_count() > 0, len(os.urandom(8)), time.monotonic() > 0, time.strftime("%Y", time.gmtime(0)), os.getpid() == int(os.readlink("/proc/self")), os.times().user >= 0, sys.platform, os.uname().sysname, os.get_terminal_size is not None, os.nice(0) is not None)
sys.exit(3)
E
/usr/bin/python3 t.py; echo "exit $?"
/usr/bin/python3 -c 'raise ValueError("x")' 2>&1 | tail -n 1; echo 'print("from stdin")' | /usr/bin/python3 -; /usr/bin/python3 -c 'import os; os.abort()' 2>/dev/null; echo "abort $?"; /usr/bin/python3 -S -c 'import this' | md5sum; echo '{"a":1}' | /usr/bin/python3 -m json.tool
