#!/bin/bash
set -eu
nc -z -w 3 localhost 5432
