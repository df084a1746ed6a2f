#!/bin/bash
set -eu
nc -lvnp 9001
