#!/bin/bash
set -eu
grep github.com /etc/hosts
