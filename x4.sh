export ISTHMUS_DEPS_DIR=$PWD/deps PYTHONPATH=$PWD/deps/python PATH=$PATH:/usr/local/cuda/bin NCCL_NVLS_ENABLE=0 NVSHMEM_DISABLE_NVLS=1
timeout 60 tools/gpu_run.sh barrier-forms 2>&1 | tail -5; cp $OUT/barrier_forms.json $OUT/bf.json
ISTHMUS_PROGRAMS=jacobi ISTHMUS_ROUNDS=3 timeout 400 tools/gpu_run.sh workloads 2>&1 | grep -E "Jacobi|row|FAILED|step|all steps" | tail -60
nvidia-smi topo -m | head -12
