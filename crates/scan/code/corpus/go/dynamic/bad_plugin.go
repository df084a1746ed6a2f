package main

import "plugin"

func load(path string) (*plugin.Plugin, error) {
	return plugin.Open(path)
}
