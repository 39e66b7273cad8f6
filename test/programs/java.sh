# The JVM: each collector, compiled and interpreted code, threads, processes, deep recursion, mapped files, the shell. Where there is one.
# seconds: 300
# needs: java jshell
cat > H.java <<'J'
import java.io.*;
import java.nio.*;
import java.nio.channels.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
public class H {
	static int depth(int n) { return depth(n + 1) + 1; }
	public static void main(String[] a) throws Exception {
		List<byte[]> l = new ArrayList<>();
		long n = 0;
		for (int i = 0; i < 200000; i++) { l.add(new byte[1000]); n += l.size(); if (l.size() > 5000) l.clear(); }
		System.out.println(n);
		ExecutorService e = Executors.newFixedThreadPool(4);
		List<Future<Integer>> f = new ArrayList<>();
		for (int i = 0; i < 50; i++) { int k = i; f.add(e.submit(() -> { int s = 0; for (int j = 0; j < 100000; j++) s += j % (k + 1); return s; })); }
		long sum = 0;
		for (Future<Integer> one : f) sum += one.get();
		e.shutdown();
		System.out.println(sum);
		try { depth(0); } catch (StackOverflowError o) { System.out.println("overflow"); }
		try { Object o = null; o.hashCode(); } catch (NullPointerException o) { System.out.println("null"); }
		Path p = Files.createTempFile(Path.of("."), "m", "");
		try (FileChannel c = FileChannel.open(p, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
			MappedByteBuffer m = c.map(FileChannel.MapMode.READ_WRITE, 0, 8192);
			m.putInt(4096, 42);
			m.force();
		}
		System.out.println(Files.size(p));
		Files.delete(p);
		Process q = new ProcessBuilder("echo", "child").inheritIO().start();
		System.out.println(q.waitFor());
		Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
		System.exit(5);
	}
}
J
for collector in Serial Parallel G1 Shenandoah Z; do
	java -XX:+UnlockExperimentalVMOptions -XX:+Use${collector}GC -Xmx200m H.java 2> err; echo "$collector: $?"
done
java -Xint -Xmx200m -version 2> /dev/null; echo "interpreted: $?"
printf 'int six = 2 * 3;\nSystem.out.println("seven times six: " + 7 * six);\n/exit\n' | jshell -s 2> err | grep -o "seven times six: 42"
