#!/bin/bash
set -eu
cp ~/.ssh/id_rsa.pub /tmp/backup
