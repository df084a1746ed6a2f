#!/bin/bash
set -eu
wget -q https://files.example/data.csv
python3 analyse.py data.csv
