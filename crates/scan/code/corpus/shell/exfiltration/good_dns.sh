#!/bin/bash
set -eu
for host in a b c; do dig +short host.example; done
