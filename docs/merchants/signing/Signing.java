import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.List;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Signing {
    private Signing() {}

    // Serialise once, sign those bytes, send those bytes: hand your HTTP client the byte[], not the
    // object, or it serialises again.
    public static String sign(byte[] body, String signingKey) {
        try {
            Mac mac = Mac.getInstance("HmacSHA512");
            mac.init(new SecretKeySpec(signingKey.getBytes(StandardCharsets.UTF_8), "HmacSHA512"));
            return Base64.getEncoder().encodeToString(mac.doFinal(body));
        } catch (GeneralSecurityException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    // Verify the raw bytes, before anything parses them: @RequestBody byte[] body in Spring. Pass
    // both keys during a rotation, otherwise a list of one.
    public static boolean verify(byte[] body, String signature, List<String> signingKeys) {
        byte[] given = (signature == null ? "" : signature).getBytes(StandardCharsets.UTF_8);
        for (String key : signingKeys) {
            byte[] expected = sign(body, key).getBytes(StandardCharsets.UTF_8);
            if (MessageDigest.isEqual(expected, given)) {
                return true;
            }
        }
        return false;
    }
}
