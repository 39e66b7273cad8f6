# A static Rust program: threads, locks, sockets, processes.
# seconds: 60
"$BIN/guest-rust"
echo "exit $?"
