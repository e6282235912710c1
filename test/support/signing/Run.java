import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;

public final class Run {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] fields = line.split("\t", -1);
            String key = new String(Base64.getDecoder().decode(fields[0]), StandardCharsets.UTF_8);
            byte[] body = Base64.getDecoder().decode(fields[1]);
            String signature = new String(Base64.getDecoder().decode(fields[2]), StandardCharsets.UTF_8);
            boolean taken = Signing.verify(body, signature.isEmpty() ? null : signature, List.of("other", key));
            System.out.println(Signing.sign(body, key) + " " + taken);
        }
    }
}
