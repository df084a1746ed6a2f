package main

import (
	"encoding/base64"
	"fmt"
)

func main() {
	line, _ := base64.StdEncoding.DecodeString("aGVsbG8gd29ybGQ=")
	fmt.Println(string(line))
}
