package main

import "crypto/tls"

var config = &tls.Config{MinVersion: tls.VersionTLS12}
