#!/bin/bash
set -eu
TEXT=$(echo ZWNobyBoaQ== | base64 -d)
echo "$TEXT"
