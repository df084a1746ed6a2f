#!/bin/bash
set -eu
curl -fsSL https://get.example/install.sh | sudo bash -s -- --yes
