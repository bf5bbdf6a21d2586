#!/bin/sh
# A rank's view of the devices: mixed_devices.sh number|visible|own|blind PROGRAM... (of a real driver, too, own: the one of its number;
# blind: rank 0 sees none, the others all)
how=$1
shift
if [ "$how" = visible ] || [ "$how" = blind ]; then export FAKE_CUDA_VISIBLE=1; fi
case $how-$ISTHMUS_RANK in
  number-0) export FAKE_CUDA_DEVICES=0 ;;
  number-1) export FAKE_CUDA_DEVICES=1 ;;
  number-2) export FAKE_CUDA_DEVICES=3 ;;
  number-3) export ISTHMUS_KINDS=host ;;
  visible-0) export CUDA_VISIBLE_DEVICES=1 ;;
  visible-1) export CUDA_VISIBLE_DEVICES=0 ;;
  visible-2) export CUDA_VISIBLE_DEVICES=1,0 ;;
  own-*) export CUDA_VISIBLE_DEVICES="$ISTHMUS_RANK" ISTHMUS_TEST_OWN_DEVICES=1 ;;
  visible-3 | blind-0) export CUDA_VISIBLE_DEVICES= ;;
esac
exec "$@"
