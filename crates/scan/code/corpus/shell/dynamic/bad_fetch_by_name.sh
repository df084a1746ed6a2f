#!/bin/bash
cd "$(mktemp -d)"
wget -q https://get.example/install.sh && mv install.sh run.sh
bash ./run.sh
