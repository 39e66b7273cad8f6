# redis-server with redis-cli beside it: unix socket and loopback TCP, persistence, many clients.
# seconds: 90
set -u
redis-server --port 7379 --bind 127.0.0.1 --unixsocket ./r.sock --save '' --appendonly yes --dir . --daemonize no --logfile log >/dev/null 2>&1 &
p=$!
i=0; while [ $i -lt 200 ] && ! redis-cli -s ./r.sock ping 2>/dev/null | grep -q PONG; do sleep 0.05; i=$((i + 1)); done
u="redis-cli -s ./r.sock"; t="redis-cli -h 127.0.0.1 -p 7379"
$u set a 1; $t incr a; $u get a; $t rpush l x y z; $u lrange l 0 -1; $t hset h f v g w; $u hgetall h; $t sadd s 1 2 3; $u scard s; $t zadd z 1 one 2 two; $u zrange z 0 -1 withscores
seq 1 5000 | sed 's/.*/set key& value&/' | $t | sort | uniq -c | tr -s ' '; $u dbsize; seq 1 2000 | awk '{ print "incr counter" }' | $u --pipe 2>&1 | tail -n 1
for k in 1 2 3 4; do (for n in 1 2 3 4 5 6 7 8 9 10; do $t incr shared >/dev/null; done) & c="${c:-} $!"; done; wait $c; $u get shared
$u eval 'return redis.call("get", KEYS[1]) + 1' 1 shared; $t expire a 100; $u ttl a | awk '{ print ($1 > 90) }'; $t save; ls dump.rdb; $u bgrewriteaof; sleep 0.5; $u config get maxmemory; $t info server | grep -c redis_version; $u nosuch; echo "code $?"
redis-benchmark -s ./r.sock -n 2000 -c 10 -q -t set,get 2>/dev/null | tr '\r' '\n' | grep -c 'requests per second'; redis-benchmark -h 127.0.0.1 -p 7379 -n 2000 -c 10 -q -t set,get 2>/dev/null | tr '\r' '\n' | grep -c 'requests per second'
$t shutdown nosave; wait $p; echo "server $?"; $t ping; echo "gone $?"
redis-server --port 7379 --bind 127.0.0.1 --save '' --appendonly yes --dir . --logfile log >/dev/null 2>&1 &
p=$!; i=0; while [ $i -lt 200 ] && ! $t ping 2>/dev/null | grep -q PONG; do sleep 0.05; i=$((i + 1)); done
$t get counter; $t dbsize; kill $p; wait $p; echo "server $?"
