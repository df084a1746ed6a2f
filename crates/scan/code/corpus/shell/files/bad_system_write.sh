#!/bin/bash
set -eu
echo '203.0.113.5 github.com' >> /etc/hosts
