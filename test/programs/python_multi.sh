# python3: multiprocessing by fork, spawn and forkserver, pools, queues, shared memory, asyncio, concurrent.futures, HTTP server.
# seconds: 180
cat > m.py <<'E'
import multiprocessing as mp, os, sys, time, concurrent.futures as cf
from multiprocessing import shared_memory
def sq(x): return x * x
def put(q, i): q.put((i, os.getpid() != os.getppid()))
def inc(v, l):
    for _ in range(200):
        with l: v.value += 1
def child(c): c.send([c.recv() * 2, "sent"]); c.close()
def shm(name): s = shared_memory.SharedMemory(name); s.buf[1] = 7; s.close()
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        ctx = mp.get_context(method); print("--", method, flush=True)
        with ctx.Pool(3) as p: print(sum(p.map(sq, range(100))), p.apply(sq, (9,)), sorted(p.imap_unordered(sq, range(5))))
        q = ctx.Queue(); ps = [ctx.Process(target=put, args=(q, i)) for i in range(4)]; [p.start() for p in ps]; print(sorted(q.get() for _ in ps)); [p.join() for p in ps]; print([p.exitcode for p in ps])
        v = ctx.Value("i", 0); l = ctx.Lock(); ps = [ctx.Process(target=inc, args=(v, l)) for _ in range(3)]; [p.start() for p in ps]; [p.join() for p in ps]; print(v.value)
        a, b = ctx.Pipe(); p = ctx.Process(target=child, args=(b,)); p.start(); a.send(21); print(a.recv()); p.join()
        s = shared_memory.SharedMemory(create=True, size=100); p = ctx.Process(target=shm, args=(s.name,)); p.start(); p.join(); print(s.buf[1]); s.close(); s.unlink()
        p = ctx.Process(target=time.sleep, args=(100,)); p.start(); p.terminate(); p.join(); print(p.exitcode)
        with cf.ProcessPoolExecutor(2, mp_context=ctx) as ex: print(list(ex.map(sq, range(5))))
    with mp.Manager() as m: d = m.dict(); d["x"] = 1; print(dict(d))
    with cf.ThreadPoolExecutor(8) as ex: print(sum(ex.map(sq, range(1000))))
E
/usr/bin/python3 m.py; echo "exit $?"
cat > a.py <<'E'
import asyncio, os, signal, sys
async def tick(n, d): await asyncio.sleep(d); return n
async def handle(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()
async def main():
    print(await asyncio.gather(*(tick(i, 0.01 * (5 - i)) for i in range(5))))
    s = await asyncio.start_server(handle, "127.0.0.1", 0); port = s.sockets[0].getsockname()[1]
    async def client(i):
        r, w = await asyncio.open_connection("127.0.0.1", port); w.write(b"client %d\n" % i); d = await r.read(); w.close(); return d
    print(sorted(await asyncio.gather(*(client(i) for i in range(20))))[:3]); s.close(); await s.wait_closed()
    u = await asyncio.start_unix_server(handle, "u.sock"); r, w = await asyncio.open_unix_connection("u.sock"); w.write(b"unix\n"); print(await r.read()); w.close(); u.close()
    p = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE); print(len((await p.communicate(b"y" * 200000))[0]), p.returncode)
    p = await asyncio.create_subprocess_shell("exit 4"); print(await p.wait())
    try: await asyncio.wait_for(asyncio.sleep(10), 0.02)
    except asyncio.TimeoutError: print("timeout")
    loop = asyncio.get_running_loop(); f = loop.create_future(); loop.add_signal_handler(signal.SIGUSR1, lambda: f.set_result("signal")); os.kill(os.getpid(), signal.SIGUSR1); print(await f)
    print(await loop.run_in_executor(None, sum, range(1000))); q = asyncio.Queue(2)
    async def prod(): [await q.put(i) for i in range(10)]
    t = asyncio.create_task(prod()); print([await q.get() for _ in range(10)]); await t
    class P(asyncio.DatagramProtocol):
        def datagram_received(self, d, a): g.set_result(d)
    g = loop.create_future(); tr, _ = await loop.create_datagram_endpoint(P, local_addr=("127.0.0.1", 0)); tr.sendto(b"udp", tr.get_extra_info("sockname")); print(await g); tr.close()
asyncio.run(main())
E
/usr/bin/python3 a.py; echo "exit $?"
cat > h.py <<'E'
import http.server, threading, urllib.request, os
open("page", "w").write("content " * 1000)
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("H", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *a: None})); threading.Thread(target=s.serve_forever, daemon=True).start()
u = f"http://127.0.0.1:{s.server_port}/"
print(len(urllib.request.urlopen(u + "page").read()))
try: urllib.request.urlopen(u + "none")
except urllib.error.HTTPError as e: e.read(); print(e.code)
ts = [threading.Thread(target=lambda: urllib.request.urlopen(u + "page").read()) for _ in range(10)]; [t.start() for t in ts]; [t.join() for t in ts]; s.shutdown(); print("served")
E
/usr/bin/python3 h.py; echo "exit $?"
