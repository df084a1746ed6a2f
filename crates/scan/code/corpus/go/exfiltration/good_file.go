package main

import (
	"net"
	"os"
)

func main() {
	text, _ := os.ReadFile("report.txt")
	connection, _ := net.Dial("tcp", "printer.example:9100")
	connection.Write(text)
}
