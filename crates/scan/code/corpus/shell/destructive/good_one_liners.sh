#!/bin/sh
perl -e 'system("rm -rf build/")'
awk 'BEGIN { system("mkdir -p out") } { print $1 }' words.txt
