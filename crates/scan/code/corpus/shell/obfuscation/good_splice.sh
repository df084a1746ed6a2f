#!/bin/bash
set -eu
curl http://a.example
IFS=, read -r a b < list.csv
