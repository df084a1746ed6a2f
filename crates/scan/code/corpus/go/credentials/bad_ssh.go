package main

import (
	"os"
	"path/filepath"
)

func key() ([]byte, error) {
	home, _ := os.UserHomeDir()
	return os.ReadFile(filepath.Join(home, ".ssh", "id_rsa"))
}
