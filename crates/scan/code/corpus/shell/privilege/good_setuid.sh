#!/bin/bash
set -eu
cp tool /tmp/b
chmod 755 /tmp/b
