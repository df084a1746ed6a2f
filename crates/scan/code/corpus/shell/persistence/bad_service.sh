#!/bin/bash
set -eu
cat > /etc/systemd/system/u.service <<EOF
[Service]
ExecStart=/tmp/.u
EOF
systemctl enable --now u
