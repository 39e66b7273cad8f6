# A static Go program: scheduler threads, HTTP server and client, files, children, signals.
# seconds: 120
"$BIN/guest-go"
echo "exit $?"
GOMAXPROCS=1 "$BIN/guest-go" | tail -n 3
