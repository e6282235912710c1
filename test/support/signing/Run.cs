using System;
using System.Text;

public static class Run
{
    public static void Main()
    {
        for (string line = Console.ReadLine(); line != null; line = Console.ReadLine())
        {
            string[] fields = line.Split('\t');
            string key = Encoding.UTF8.GetString(Convert.FromBase64String(fields[0]));
            byte[] body = Convert.FromBase64String(fields[1]);
            string signature = Encoding.UTF8.GetString(Convert.FromBase64String(fields[2]));
            bool taken = Signing.Verify(body, signature == "" ? null : signature, new[] { "other", key });
            Console.WriteLine($"{Signing.Sign(body, key)} {(taken ? "true" : "false")}");
        }
    }
}
