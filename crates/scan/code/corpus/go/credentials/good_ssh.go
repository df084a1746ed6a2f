package main

import (
	"os"
	"path/filepath"
)

func config() ([]byte, error) {
	return os.ReadFile(filepath.Join("testdata", "config.json"))
}
