package main

import (
	"fmt"
	"io"
	"net/http"
)

func main() {
	answer, _ := http.Get("https://api.example/status")
	body, _ := io.ReadAll(answer.Body)
	fmt.Println(string(body))
}
