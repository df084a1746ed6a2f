#!/bin/bash
set -eu
docker run --rm -it -v /:/mnt alpine chroot /mnt sh
