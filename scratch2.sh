#!/bin/bash
export ISTHMUS_COMMIT=5091b37
O=/tmp/o2; mkdir -p $O
I=build-gpu/bin/isthmus
export PEER_UCX=$PWD/deps/ucx/libucx
part() { n=$1; shift; s=$SECONDS; "$@" > $O/$n.txt 2>&1; echo "$n rc $? $((SECONDS-s)) s" >> $O/progress; }
part rest env OUT=$O/rest tools/gpu_run.sh check rest
part limits timeout 80 $I bench limits --from cuda:0 --to cuda:1 --quick --sizes 8,64KiB,1MiB,16MiB
part fit timeout 60 env XDG_CACHE_HOME=/tmp/cache $I model fit --quick
part fit1 timeout 60 env CUDA_VISIBLE_DEVICES=0 $I model fit --quick --output /tmp/one.json
part show env ISTHMUS_PROFILE=/tmp/one.json $I model show
cp /tmp/cache/isthmus/* $O/profile.json
part streamsbw timeout 60 $I bench stream-bandwidth --from cuda:0 --to cuda:1 --quick --min 64KiB --max 64MiB
for n in 1 2 3; do part peers$n env ISTHMUS_ROUNDS=1 OUT=$O/peers tools/gpu_run.sh peers; done
part coll env OUT=$O/coll tools/gpu_run.sh collectives
touch $O/done
