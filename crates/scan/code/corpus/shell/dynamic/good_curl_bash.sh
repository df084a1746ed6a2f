#!/bin/bash
set -eu
curl -fsSL https://get.example/install.sh -o install.sh
sha256sum -c install.sh.sha256
