#!/bin/bash
set -eu
wget -q https://files.example/tool.tar.gz
./tool --threads 4
