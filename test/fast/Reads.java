import java.nio.file.*;
/** Reads a small file again and again. */
public class Reads {
	public static void main(String[] none) throws Exception {
		for (int n = 0; n < 3000; n++)
			if (Files.readAllBytes(Path.of("/etc/passwd")).length == 0)
				throw new Exception("nothing was read");
	}
}
