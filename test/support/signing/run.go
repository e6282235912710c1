package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	"example/signing"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var fields [3][]byte
		for index, field := range strings.Split(lines.Text(), "\t") {
			fields[index], _ = base64.StdEncoding.DecodeString(field)
		}
		key, body, signature := string(fields[0]), fields[1], string(fields[2])
		taken := signing.Verify(body, signature, []string{"other", key})
		fmt.Println(signing.Sign(body, key), taken)
	}
}
