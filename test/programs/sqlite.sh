# sqlite3: tables, transactions, write-ahead log, two processes at one file.
set -e
sqlite3 t.db "create table t(id integer primary key, name text, n real); create index i on t(name);"
sqlite3 t.db "with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000) insert into t select x, 'name' || (x * 7919 % 10007), x * 1.5 from c;"
sqlite3 t.db "select count(*), sum(n), min(name), max(name) from t; select * from t where name = 'name5' order by id limit 3; explain query plan select * from t where name = 'x';" | tr -s ' '
sqlite3 t.db "begin; delete from t where id > 100; rollback; select count(*) from t; pragma integrity_check; vacuum;"
sqlite3 t.db "pragma journal_mode=wal;"; (sqlite3 t.db "pragma busy_timeout=5000; begin immediate; insert into t values(100001, 'a', 1); commit;" >/dev/null) & (sqlite3 t.db "pragma busy_timeout=5000; begin immediate; insert into t values(100002, 'b', 2); commit;" >/dev/null) & wait
sqlite3 t.db "select * from t where id > 100000 order by id; pragma wal_checkpoint(truncate);"; ls
sqlite3 t.db .dump | wc -l; sqlite3 t.db .dump | sqlite3 copy.db; sqlite3 copy.db "select count(*) from t"; printf 'a,b\n1,2\n3,4\n' > x.csv; sqlite3 m.db '.mode csv' '.import x.csv x' 'select sum(a), sum(b) from x'; sqlite3 t.db "select nonsense" 2>&1 || echo "error $?"; sqlite3 :memory: "select json_extract('{\"a\":[1,2]}', '\$.a[1]'), hex(randomblob(2)) is not null, strftime('%Y', 0, 'unixepoch')"
