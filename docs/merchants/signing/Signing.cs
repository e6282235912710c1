using System;
using System.Collections.Generic;
using System.Security.Cryptography;
using System.Text;

public static class Signing
{
    // Serialise once, sign those bytes, send those bytes: JsonSerializer.SerializeToUtf8Bytes(value)
    // in a ByteArrayContent, not PostAsJsonAsync, which serialises again.
    public static string Sign(byte[] body, string signingKey)
    {
        using var hmac = new HMACSHA512(Encoding.UTF8.GetBytes(signingKey));
        return Convert.ToBase64String(hmac.ComputeHash(body));
    }

    // Verify the raw bytes, before anything parses them: copy Request.Body to a MemoryStream, and
    // bind no model. Pass both keys during a rotation, otherwise a list of one.
    public static bool Verify(byte[] body, string signature, IEnumerable<string> signingKeys)
    {
        byte[] given = Encoding.UTF8.GetBytes(signature ?? "");
        foreach (string key in signingKeys)
        {
            byte[] expected = Encoding.UTF8.GetBytes(Sign(body, key));
            if (CryptographicOperations.FixedTimeEquals(expected, given))
            {
                return true;
            }
        }
        return false;
    }
}
