#!/bin/bash
set -eu
rm -f /tmp/p; mkfifo /tmp/p; cat data.txt > /tmp/p &
wc -l < /tmp/p
