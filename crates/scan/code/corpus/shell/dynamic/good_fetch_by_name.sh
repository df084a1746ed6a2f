#!/bin/bash
cd "$(mktemp -d)"
wget -q https://get.example/words.txt && mv words.txt list.txt
sort -u list.txt > sorted.txt
eval "COUNT_$(echo "$1" | tr a-z A-Z)=$(wc -l < sorted.txt)"
