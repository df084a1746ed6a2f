package main

import (
	"net/http"
	"os"
	"strings"
)

func report() {
	name := os.Getenv("USER")
	http.Post("https://telemetry.example", "text/plain", strings.NewReader(name))
}
