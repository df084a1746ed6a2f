#!/bin/bash
set -eu
cat > build/u.service <<EOF
[Service]
ExecStart=/usr/bin/u
EOF
systemctl status u || true
