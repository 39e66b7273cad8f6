# LuaJIT: compiled loops, the foreign function interface, coroutines, allocations up to its limit, and what is thrown through C.
# seconds: 120
luajit -e 'local t = {} for i = 1, 1e6 do t[i] = i * 2 end local s = 0 for i, v in ipairs(t) do s = s + v end print(s, (jit.status()))'
luajit -e 'local ffi = require("ffi") ffi.cdef[[int getpid(void); size_t strlen(const char *); typedef int (*order)(const void *, const void *); void qsort(void *, size_t, size_t, order);]]
print(ffi.C.getpid() > 0, tonumber(ffi.C.strlen("seven..")))
local a = ffi.new("int[5]", 5, 3, 1, 4, 2)
ffi.C.qsort(a, 5, 4, function(x, y) return ffi.cast("const int *", x)[0] - ffi.cast("const int *", y)[0] end)
print(a[0], a[1], a[2], a[3], a[4])'
luajit -e 'local function gen(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end local s = 0 for i in gen(100000) do s = s + i end print(s)'
# Its memory is to be in the low 2 GiB or 128 TiB, by form.
luajit -e 'local keep = {} for i = 1, 100 do keep[i] = string.rep(tostring(i), 200000) end collectgarbage() print(#keep, #keep[100], collectgarbage("count") > 30000)'
luajit -e 'print(pcall(function() for i = 1, 300 do string.gsub("a", "a", function() if i == 250 then error({code = 7}) end end) end end))' | sed 's/0x[0-9a-f]*/ADDR/'
luajit -joff -e 'local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end print(fib(24))'
luajit -jdump=b -e 'print(1)' 2> /dev/null | tail -n 1
luajit -e 'for i = 1, 3 do local f = io.popen("echo from " .. i) print(f:read("*l")) f:close() end os.exit(5)'; echo "exit $?"
luajit -e 'error("thrown")' 2>&1 | head -n 1
