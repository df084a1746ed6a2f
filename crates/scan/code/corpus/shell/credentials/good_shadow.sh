#!/bin/bash
set -eu
cut -d: -f1 /etc/passwd
